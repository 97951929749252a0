"""Plausible wrong answers to lesson 08's exercises, and what the check says of each."""

import json

import numpy as np


def one_list(images):
    return json.dumps([{"images": image.tolist()} for image in images]) + "\n"


def pythons_words(images):
    return "".join(f"{ {'images': image.tolist()} }\n" for image in images)


def numpys_own(images):
    return "".join(json.dumps({"images": image}) + "\n" for image in images)


def all_in_each(images):
    return "".join(json.dumps({"images": images.tolist()}) + "\n" for _ in images)


def no_last_break(images):
    return "\n".join(json.dumps({"images": image.tolist()}) for image in images)


def batches_of_one(images):
    return "".join(json.dumps({"images": [image.tolist()]}) + "\n" for image in images)


def rows_of(body):
    return np.array(json.loads(body)["predictions"])


def always_sure(body, sure=0.5):
    return json.dumps({"digits": rows_of(body).argmax(axis=1).tolist()})


def left_out(body, sure=0.5):
    rows = rows_of(body)
    return json.dumps({"digits": [int(row.argmax()) for row in rows if row.max() >= sure]})


def zero_is_false(body, sure=0.5):
    digits = [int(row.argmax()) * bool(row.max() >= sure) or None for row in rows_of(body)]
    return json.dumps({"digits": digits})


def not_a_text(body, sure=0.5):
    return {"digits": rows_of(body).argmax(axis=1).tolist()}


def floats(body, sure=0.5):
    rows = rows_of(body)
    return json.dumps({"digits": [float(r.argmax()) if r.max() >= sure else None for r in rows]})


def lead(body, sure=0.5):
    rows = rows_of(body)
    sure_ones = [np.sort(row)[-1] - np.sort(row)[-2] >= sure for row in rows]
    return json.dumps(
        {"digits": [int(r.argmax()) if ok else None for ok, r in zip(sure_ones, rows, strict=True)]}
    )


def another_default(body, sure=0.9):
    rows = rows_of(body)
    return json.dumps({"digits": [int(r.argmax()) if r.max() >= sure else None for r in rows]})


def probabilities(body, sure=0.5):
    rows = rows_of(body)
    return json.dumps({"digits": [float(r.max()) if r.max() >= sure else None for r in rows]})


def mistakes(probabilities, labels):
    return np.flatnonzero(probabilities.argmax(axis=1) != labels)


def unsure_first(probabilities, labels):
    wrong = mistakes(probabilities, labels)
    return wrong[np.argsort(probabilities[wrong].max(axis=1))]


def by_the_right_class(probabilities, labels):
    wrong = mistakes(probabilities, labels)
    return wrong[np.argsort(-probabilities[wrong, labels[wrong]], kind="stable")]


def places(probabilities, labels):
    return np.argsort(-probabilities[mistakes(probabilities, labels)].max(axis=1))


def as_a_mask(probabilities, labels):
    return probabilities.argmax(axis=1) != labels


def right_answers(probabilities, labels):
    return np.flatnonzero(probabilities.argmax(axis=1) == labels)


WRONG = {
    "08.1": [
        (unsure_first, "argsort begins with the smallest"),
        (by_the_right_class, "not by that of the right class"),
        (places, "not the images' numbers"),
        (as_a_mask, "return the numbers"),
        (right_answers, "is not its label"),
    ],
    "08.2": [
        (one_list, "no list around them"),
        (pythons_words, "is no JSON"),
        (numpys_own, "tolist"),
        (all_in_each, "does not hold image 0"),
        (no_last_break, "no line break"),
        (batches_of_one, "batch of one"),
    ],
    "08.3": [
        (always_sure, "below sure"),
        (left_out, "one entry for each image"),
        (zero_is_false, "0 is a digit"),
        (not_a_text, "json.dumps"),
        (probabilities, "not its probability"),
        (floats, "neither 7.0 nor a text"),
        (lead, "not its lead over the second"),
        (another_default, "With sure 0.5 by default it is"),
    ],
}


def as_a_list(probabilities, labels):
    """Python's own way, a list of numbers."""
    wrong = mistakes(probabilities, labels).tolist()
    return sorted(wrong, key=lambda number: -max(probabilities[number]))


RIGHT = {"08.1": [as_a_list]}

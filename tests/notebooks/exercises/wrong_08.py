"""Wrong answers to lesson 08's exercises, as changes of the solutions, and what is said of them."""

SURE = "int(d) if row[d] >= sure else None"
ALL = "for d, row in zip(best, rows, strict=True)"

RIGHT = {"08.1": [{"max(axis=1))]": "max(axis=1))].tolist()"}]}
WRONG = {
    "08.1": [
        ({"-probabilities": "probabilities"}, "argsort begins with the smallest"),
        ({"[wrong].max(axis=1)": "[wrong, labels[wrong]]"}, "not by that of the right class"),
        ({"return wrong[": "return np.arange(len(wrong))["}, "not the images' numbers"),
        ("return probabilities.argmax(axis=1) != labels", "return the numbers"),
        ({"!= labels": "== labels"}, "is not its label"),
    ],
    "08.2": [
        (
            'return json.dumps([{"images": image.tolist()} for image in images]) + "\\n"',
            "no list around them",
        ),
        ({"json.dumps({": "str({"}, "is no JSON"),
        ({"image.tolist()": "image"}, "tolist"),
        ({"image.tolist()": "images.tolist()"}, "does not hold image 0"),
        ({'"".join': '"\\n".join', ' + "\\n"': ""}, "no line break"),
        ({"image.tolist()": "[image.tolist()]"}, "batch of one"),
    ],
    "08.3": [
        ({"row[d] >= sure": "True"}, "below sure"),
        ({SURE: "int(d)", ALL: f"{ALL} if row[d] >= sure"}, "one entry for each image"),
        ({SURE: "int(d) * bool(row[d] >= sure) or None"}, "0 is a digit"),
        ({"json.dumps({": "dict({"}, "json.dumps"),
        ({"int(d)": "float(row[d])"}, "not its probability"),
        ({"int(d)": "float(d)"}, "neither 7.0 nor a text"),
        ({"row[d] >=": "row[d] - np.sort(row)[-2] >="}, "not its lead over the second"),
        ({"sure=0.5": "sure=0.9"}, "With sure 0.5 by default it is"),
    ],
}

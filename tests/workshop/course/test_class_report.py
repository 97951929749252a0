"""`workshop class`: hand-ins, and the report of a class."""

import json

import nbformat

from workshop.course import class_report

HOSTILE = "<script>alert('x')</script>"


def content(name="Ada", section="The ring", exercise=("right", ""), off="nothing", guess="2"):
    row = {"your guess": guess, "measured": "1", "off by": off}
    state = {"run": 3, "cells": 9, "section": section, "exercises": {"02.1": list(exercise)}}
    return {"format": 1, "name": name, "lessons": {"02": state | {"guesses": {"How many?": row}}}}


def a_class(folder):
    """Thirty files: 22 whole, 8 broken."""
    every = [content(f"Person {at:02}") for at in range(14)]
    every += [content(f"Wrong {at}", exercise=("wrong", "Rank 0 got too much")) for at in range(4)]
    hostile = content(HOSTILE + "\ud800", HOSTILE, ("wrong", HOSTILE), "another answer", HOSTILE)
    every += [content("Twin"), content("Twin"), hostile]
    every += [content("Factor", off="10 times too high", guess="10")]
    texts = [json.dumps(each) for each in every]
    texts += [texts[0][:60], "", "[1, 2]", '"text"', json.dumps(content() | {"format": 2})]
    broken = content()
    broken["lessons"]["02"]["exercises"] = {"02.1": "right"}
    texts += [
        json.dumps(broken),
        json.dumps({"format": 1, "name": "", "lessons": {}}),
        "[" * 100_000,
    ]
    paths = []
    for at, text in enumerate(texts):
        paths.append(folder / f"{at:02}.json")
        paths[-1].write_text(text)
    return paths


def test_the_report_of_thirty_files_of_which_eight_are_broken(command, tmp_path):
    paths = a_class(tmp_path)
    assert len(paths) == 30
    status, output = command("class", "report", *paths, "--out", tmp_path / "class.html")
    assert status == 0, output
    lines = [line for line in output.splitlines() if line.startswith("not read: ")]
    assert [line.split()[2] for line in lines] == [f"{at}.json:" for at in range(22, 30)]
    assert "format 2; this kit reads format 1" in output
    page = (tmp_path / "class.html").read_text()
    assert "22 participants" in page and "Twin (18.json)" in page and "Twin (19.json)" in page
    assert "<script" not in page and page.count("&lt;script&gt;") >= 3
    assert "02 · The ring" in page
    assert (page.count("<td>✓</td>"), page.count("<td>✗</td>")) == (17, 5)
    people, _ = class_report.read_all(paths)
    stopping = class_report.stopping(class_report.exercise_results(people))
    assert stopping.loc["02.1"].tolist() == [5, 0, 17, "Rank 0 got too much (4)"]
    wrong = class_report.wrong_guesses(class_report.all_guesses(people))
    assert wrong.loc["How many?"].tolist()[:4] == [22, 2, 1, 0]


def test_who_of_a_roster_has_not_handed_in(command, tmp_path):
    paths, roster = a_class(tmp_path), tmp_path / "roster.txt"
    roster.write_text("person  00\n\nTwin\nGrace Hopper\n")
    out = tmp_path / "class.html"
    status, output = command("class", "report", *paths, "--out", out, "--roster", roster)
    assert status == 0, output
    assert output.endswith("not handed in: Grace Hopper\n")
    assert "<p>Grace Hopper</p>" in out.read_text()


def test_only_a_report_of_nothing_fails(command, tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    broken = [*a_class(tmp_path)[-8:], tmp_path / "none.json", tmp_path / "x.json", tmp_path]
    status, output = command("class", "report", *broken, "--out", tmp_path / "class.html")
    assert status == 1 and output.count("not read: ") == len(broken)
    assert not (tmp_path / "class.html").exists()


def test_a_hand_in_holds_what_the_notebooks_show(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    lesson, exercises = tmp_path / "02_x.ipynb", tmp_path / "exercises" / "02_x.ipynb"
    new = nbformat.v4
    answers = {"How many?": {"your guess": "3", "measured": "4", "off by": "25 % too low"}}
    data = {"application/vnd.workshop.results+json": {"answers": answers}}
    run = new.new_code_cell("1", execution_count=1, outputs=[new.new_output("display_data", data)])
    cells = [new.new_markdown_cell("Before.\n\n## The ring"), run]
    cells += [new.new_markdown_cell("## Later"), new.new_code_cell("2")]
    nbformat.write(new.new_notebook(cells=cells), lesson)
    outputs = [
        new.new_output("stream", text="02.1: right. Good.\n"),
        new.new_output(
            "error", ename="Wrong", evalue="02.2: Last lines:\n rank 1 waits", traceback=[]
        ),
    ]
    nbformat.write(new.new_notebook(cells=[new.new_code_cell("x", outputs=outputs)]), exercises)
    monkeypatch.setattr(class_report, "numbers", lambda _: ["02.1", "02.2", "02.3"])
    state = class_report.hand_in("Ada", tmp_path)["lessons"]["02"]
    assert (state["run"], state["cells"], state["section"]) == (1, 2, "The ring")
    assert state["exercises"] == {
        "02.1": ["right", ""],
        "02.2": ["wrong", "Last lines: rank 1 waits"],
        "02.3": ["open", ""],
    }
    assert state["guesses"] == answers
    path = tmp_path / "ada.json"
    path.write_text(json.dumps(class_report.hand_in("Ada", tmp_path)))
    assert class_report.read(path)["lessons"]["02"] == state


def test_the_command_writes_a_file_that_the_report_reads(command, tmp_path):
    status, output = command("class", "hand-in", "Ada L.", "--out", tmp_path)
    assert status == 0, output
    person = class_report.read(tmp_path / "hand-in-Ada-L.json")
    assert person["name"] == "Ada L." and person["when"].startswith("20")
    assert command("class", "hand-in", "../..", "--out", tmp_path)[0] == 2

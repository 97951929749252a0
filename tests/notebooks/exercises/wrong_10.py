"""Wrong answers to lesson 10's exercises, as changes of the solutions, and what is said of them."""

NO_JSON = '        if not line.startswith("{"):\n            continue\n'
LINES = """steps = re.findall(r'"step", "step": (\\d+)', "".join(lines))
return 10 * (len(steps) - len(set(steps)))"""
STEPS = '    if different["steps"] > 1:\n        return "steps"\n'
IMAGES = '        return "images"\n'
NEXT = {"next((rank, function)": "next(((rank, function)"}
RENAME = "        os.replace(partial, path)\n"
FSYNC = "            os.fsync(stream.fileno())\n"
IN_PLACE = """with open(path, "wb") as stream:
    stream.writelines(chunks)
    os.fsync(stream.fileno())"""

RIGHT = {"10.4": [{"os.fsync(": "os.fdatasync("}]}  # the size is data enough
WRONG = {
    "10.1": [
        ({NO_JSON: ""}, "Some lines are not JSON"),
        ("return sum('\"resumed\"' in line for line in lines)", "Subtract the step"),
        (
            {'reached = event["step"]': 'reached = max(reached, event["step"])'},
            "the highest step of the whole log",
        ),
        (LINES, "Count steps, not lines"),
        ('return "40"', "return a whole number"),
    ],
    "10.2": [
        ({'["images"] == 1': '["images"] < len(records)'}, "Here they read two different sets"),
        ({'["images"] == 1': '["images"] > 1'}, "Only the hash of the images differs"),
        ({'"after_first"': '"at_end"'}, "so the gradients were averaged"),
        ({STEPS: "", IMAGES: IMAGES + STEPS}, "The first of the list counts"),
        ({'["images"] == 1': '["images"] == different["at_start"] == 1'}, "The first of the list"),
        ({"in records}": "in records[:2]}"}, "not only two"),
        ({"else None": 'else "gradients"'}, "good training"),
    ],
    "10.3": [
        ({"min(counts": "max(counts"}, "show the symptom, not the cause"),
        ({"return next((rank, function)": "return next((rank, 'main')"}, "first frame of a rank"),
        ({"next((rank, function) for": "next(rank for"}, "Return two things"),
        ({"int(frame[1])": "frame[1]"}, "The rank is a number"),
        ({"    if len(counts) < 2:\n        return None\n": ""}, "nobody stands out"),
        (NEXT | {"if function == rare": "if rank and function == rare), None"}, "0 is a rank"),
        (
            NEXT | {"== rare": 'not in ("all_reduce", "broadcast")), None'},
            "A rank is elsewhere",
        ),
        (NEXT | {"== rare": '!= "all_reduce"), None'}, "all but rank 2 .* not the cause"),
        ({r"\[(\d+)\]": r"\[\d*(\d)\]"}, "rank 11 of 12 .*two digits"),
    ],
    "10.4": [
        (IN_PLACE, "Write to another name"),
        ({"partial.unlink(missing_ok=True)": "pass"}, "is left in the folder"),
        ({FSYNC: ""}, "os.fsync"),
        ({"    finally:": "    except Exception:"}, "did not come out"),
        (
            {FSYNC: "", "            for chunk": f"{FSYNC}            for chunk"},
            "When all is written, flush, then os.fsync",
        ),
        ({FSYNC: "            os.sync()\n"}, "os.fsync.that file"),
        ({"            stream.flush()\n": ""}, "When all is written, flush"),
        (
            {FSYNC: "", RENAME: f"    {RENAME}{FSYNC}"},
            "First os.fsync, then rename",
        ),
        ({'path.with_name(f".{path.name}.': 'Path(f"/tmp/.{path.name}.'}, "own folder"),
    ],
    # "your name": A nothing, B tiny buckets, C slow input of rank 0, D straggler 0, E narrow link
    "10.5": [
        ({'("nothing is wrong", None)': '("straggler", 0)'}, "Job A: .* A long step alone"),
        (
            {'("tiny buckets", None)': '("narrow link", None)'},
            "Job B: .* go in 60 collectives of 49 KiB. Each costs a latency",
        ),
        (
            {'("slow input", shares["data"].idxmax())': '("straggler", 0)'},
            "Job C: a rank does come late to the collective. But why",
        ),
        ({'shares["data"].idxmax()': 'shares["data"].idxmin()'}, "Job C: .* waits for data for"),
        ({'shares["wait"].idxmin()': 'shares["wait"].idxmax()'}, "Job D: .* the rank that waits"),
        (
            {'("straggler", shares["wait"].idxmin())': '("narrow link", None)'},
            "Job D: .* it waits there for the other rank",
        ),
        (
            {'("straggler", shares["wait"].idxmin())': '("nothing is wrong", None)'},
            "Job D: .* of a rank's step is wait",
        ),
        (
            {'("narrow link", None)': '("tiny buckets", None)'},
            "Job E: all gradients go in 1 collective of 2966 KiB",
        ),
        ({'("narrow link", None)': '("straggler", 1)'}, "Job E: .* the ranks come together"),
        (
            {'("narrow link", None)': '("oversubscribed cores", None)'},
            "Job E: its ranks have 2 threads together",
        ),
        ({'("narrow link", None)': '("narrow link", 1)'}, "Job E: .* the rank is None"),
        ({'("narrow link", None)': '"narrow link"'}, "Job E: give a cause and a rank"),
        ({"    return answers": "    return list(answers)"}, "Return a dictionary"),
        (
            {"    return answers": "    return answers | {'A': ('narrow-link', None)}"},
            "is no cause",
        ),
        (
            {'shares["data"].idxmax()': 'str(shares["data"].idxmax())'},
            "Job C: the rank is a number",
        ),
        ({"    return answers": "    del answers['E']; return answers"}, "No entry for job E"),
    ],
}

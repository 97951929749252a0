"""The rules, a module for each thing that can be wrong. None of them asks AWS.

Each module has WHAT, its name for people; `check(job)`, which yields what does not go together;
and `describe(job)`, a sentence for a job with which all is well.
"""

"""Exercises: what checks a learner's answer, and what makes the exercises from the solutions."""

"""Trainings with one mistake each: `if args.fixed` is where the right ones differ.

scripts/demos/break_training.py starts them; `workshop break` runs them and says what is to be seen.
"""

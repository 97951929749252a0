"""What an instructor needs: timetables and costs, made from plan.toml and the lessons.

`plan` reads them, `pages` writes the tables of notebooks/instructor/guide.md.
"""

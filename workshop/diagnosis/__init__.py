"""Why does it hang, why is it slow: what ranks and jobs leave, read and compared.

    import workshop

    print(workshop.why())                # the last ranks that were started here
    print(workshop.why(estimator))       # a job, from its description and log

`workshop why` does the same at a shell. `evidence` reads a record, `jobs` a SageMaker job,
`collectives` and `steps` compare the ranks, `rules` name the cause, `answer` says it.
"""

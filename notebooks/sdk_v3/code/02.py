# %% ring
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_all_reduce.py"),
    distributed=MPI(process_count_per_node=4, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=4),
    hyperparameters={
        "algorithms": "naive,tree,ring,ring again,gloo",
        "bytes": "8000000,1000000,4000",
        "link-bytes": "2000,300000,2000000",
        "card-bytes": 1000000,
        "blocks": 5,
    },
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"},
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("ring"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

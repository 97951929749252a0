# %% wide, job 0
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_scaling.py"),
    distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={
        "library": "torch",
        "global-batch-size": 512,
        "hidden-units": 64,
        "steps": 2,
        "rounds": 5,
    },
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "wide"},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits-28/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits-28/test"),
    ],
    networking=Networking(subnets=subnets, security_group_ids=security_group_ids),
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("links"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% 2 x 4
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_all_reduce.py"),
    distributed=MPI(process_count_per_node=8, mpi_additional_options=["--map-by", "ppr:4:node"]),
    compute=Compute(instance_type="ml.c5.2xlarge", instance_count=2),
    hyperparameters={"algorithms": "gloo,hierarchical", "bytes": 8000000, "blocks": 5},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"},
    networking=Networking(subnets=subnets, security_group_ids=security_group_ids),
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("pytorch", "2.2.0", "ml.c5.2xlarge"),
    **shared("links"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

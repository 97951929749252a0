# %% less-often
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_less_often.py"),
    distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={
        "train": "DDP,fp16,PowerSGD,top-k,accumulation,local SGD,DiLoCo,top-k without memory,local SGD 64,alone",
        "seeds": "0,1,2",
        "steps": 192,
        "time": "DDP,fp16,PowerSGD,top-k,accumulation,local SGD,DiLoCo,alone,DDP again,alone again",
        "rounds": 5,
    },
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "wide"},
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("less-often"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% local-sgd
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch_local_sgd.py"),
    distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"epochs": 4, "sync-every": 8},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("local-sgd"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

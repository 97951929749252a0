# %% undisturbed
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch.py"),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=1),
    hyperparameters={"epochs": 90, "checkpoint-every": 500, "log-every": 1, "threads-per-rank": 1},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("alone"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% interrupted
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch.py"),
    compute=Compute(
        instance_type="ml.c5.xlarge", instance_count=1, enable_managed_spot_training=True
    ),
    hyperparameters={"epochs": 90, "checkpoint-every": 500, "log-every": 1, "threads-per-rank": 1},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    checkpoint_config=CheckpointConfig(s3_uri=f"s3://{bucket}/jobs/checkpoints/{time.time():.0f}"),
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600, max_wait_time_in_seconds=3600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("spot"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% elastic
# Version 3 has no `dependencies`: one folder holds all, and `PYTHONPATH` names the part of it that
# the script imports from.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts", entry_script="demos/change_world_size.py"),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=1),
    hyperparameters={"ranks": "4,3,4", "steps": 40},
    environment={"PYTHONPATH": "/opt/ml/input/data/code/train"},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("elastic"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

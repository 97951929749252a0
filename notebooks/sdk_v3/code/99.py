# %% last
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch.py"),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=1),
    hyperparameters={"epochs": 1},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("last"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

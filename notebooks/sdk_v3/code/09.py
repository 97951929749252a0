# %% channels
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="look_at_channels.py"),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    input_data_config=[
        InputData(
            channel_name="training",
            data_source=S3DataSource(
                s3_data_type="S3Prefix",
                s3_uri=f"s3://{bucket}/data/digits/training",
                s3_data_distribution_type="ShardedByS3Key",
            ),
        ),
        InputData(
            channel_name="test",
            data_source=S3DataSource(
                s3_data_type="S3Prefix",
                s3_uri=f"s3://{bucket}/data/digits/test",
                s3_data_distribution_type="FullyReplicated",
            ),
        ),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("channels"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% pictures
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_tf_fit.py"),
    distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={
        "library": "horovod",
        "epochs": 4,
        "learning-rate": 0.05,
        "warmup-steps": 20,
        "threads-per-rank": 1,
    },
    input_data_config=[
        Channel(
            channel_name="training",
            input_mode="FastFile",
            data_source=DataSource(
                s3_data_source=S3DataSource(
                    s3_data_type="S3Prefix",
                    s3_uri=f"s3://{bucket}/data/cifar10-sample/train",
                    s3_data_distribution_type="FullyReplicated",
                )
            ),
        ),
        Channel(
            channel_name="test",
            input_mode="FastFile",
            data_source=DataSource(
                s3_data_source=S3DataSource(
                    s3_data_type="S3Prefix",
                    s3_uri=f"s3://{bucket}/data/cifar10-sample/test",
                    s3_data_distribution_type="FullyReplicated",
                )
            ),
        ),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("tensorflow", "2.12.0", "ml.c5.xlarge"),
    **shared("pictures"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

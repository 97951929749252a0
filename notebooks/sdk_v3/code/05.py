# %% measure 2 x 2 in a VPC
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_scaling.py"),
    distributed=MPI(
        process_count_per_node=4,
        mpi_additional_options=["--map-by", "ppr:2:node", "-x", "OMPI_MCA_mpi_yield_when_idle=1"],
    ),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"global-batch-size": 512, "steps": 7, "rounds": 5, "library": "tensorflow"},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits-28/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits-28/test"),
    ],
    networking=Networking(subnets=subnets, security_group_ids=security_group_ids),
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("tensorflow", "2.12.0", "ml.c5.xlarge"),
    **shared("horovod"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% 2 x 2
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_tf_horovod.py"),
    distributed=MPI(
        process_count_per_node=4,
        mpi_additional_options=["--map-by", "ppr:2:node", "-x", "OMPI_MCA_mpi_yield_when_idle=1"],
    ),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={
        "epochs": 12,
        "global-batch-size": 256,
        "learning-rate": 0.05,
        "threads-per-rank": 1,
    },
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("tensorflow", "2.12.0", "ml.c5.xlarge"),
    **shared("horovod"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% 2 x 1 MultiWorker
# Version 3 has no key for this. The command does what version 2's key does.
command = r"""export TF_CONFIG=$(python -c 'import json, os;
hosts = json.loads(os.environ["SM_HOSTS"]);
task = {"type": "worker", "index": hosts.index(os.environ["SM_CURRENT_HOST"])};
print(json.dumps({"cluster": {"worker": [f"{host}:8890" for host in hosts]}, "task": task}))');
python train_tf_mirrored.py --epochs 12 --global-batch-size 256 --learning-rate 0.05 --threads-per-rank 1"""
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", command=command),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("tensorflow", "2.12.0", "ml.c5.xlarge"),
    **shared("horovod"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

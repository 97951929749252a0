# %% all-reduces
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_all_reduce.py"),
    distributed=MPI(process_count_per_node=8, mpi_additional_options=["--map-by", "ppr:4:node"]),
    compute=Compute(instance_type="ml.c5.2xlarge", instance_count=2),
    hyperparameters={
        "algorithms": "gloo,gloo again,ring,interleaved_ring,hierarchical,mini_herring",
        "bytes": "8000000,1000000",
        "smallest-only": "interleaved_ring",
        "blocks": 5,
    },
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"},
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("pytorch", "2.2.0", "ml.c5.2xlarge"),
    **shared("hierarchical"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% buckets
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
# Version 3 has no `dependencies`: one folder holds all, and `PYTHONPATH` names the part of it that
# the script imports from.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts", entry_script="demos/show_overlap.py"),
    distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.2xlarge", instance_count=2),
    hyperparameters={"blocks": 5},
    environment={
        "LOCAL_SAGEMAKER_BANDWIDTH": "2gbit",
        "PYTHONPATH": "/opt/ml/input/data/code/train",
    },
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("pytorch", "2.2.0", "ml.c5.2xlarge"),
    **shared("hierarchical"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% hooks
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_steps.py"),
    distributed=MPI(process_count_per_node=4, mpi_additional_options=["--map-by", "ppr:2:node"]),
    compute=Compute(instance_type="ml.c5.2xlarge", instance_count=2),
    hyperparameters={
        "all-reduce": "default,default again,hierarchical,fp16,powersgd",
        "hidden-units": 512,
        "blocks": 5,
        "steps": 2,
    },
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "100mbit"},
    stopping_condition=StoppingCondition(max_runtime_in_seconds=900),
    training_image=image("pytorch", "2.2.0", "ml.c5.2xlarge"),
    **shared("hierarchical"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% sharding
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_sharding.py"),
    distributed=MPI(process_count_per_node=4, mpi_additional_options=["--map-by", "ppr:2:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"ways": "ddp,zero1,zero2,zero3,hsdp", "width": 128, "rounds": 5},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "60mbit"},
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.6.0", "ml.c5.xlarge"),
    **shared("sharding"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

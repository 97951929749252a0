# %% server
# Version 3 passes `process_count_per_node` to `mpirun -np` as it is: give the number of all ranks,
# and say with `--map-by` how many an instance gets.
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/demos", entry_script="measure_server.py"),
    distributed=MPI(process_count_per_node=5, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=5),
    hyperparameters={"workers": "1,2,4", "bytes": 2000000, "rounds": 3, "steps": 1},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"},
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("server"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% servers
# Version 3 has no key for this. The command does what version 2's key does.
command = r"""tf_config() { python -c 'import json, os, sys;
hosts, here = json.loads(os.environ["SM_HOSTS"]), os.environ["SM_CURRENT_HOST"];
cluster = {"master": [f"{hosts[0]}:2222"], "worker": [f"{host}:2222" for host in hosts[1:]]};
cluster["ps"] = [f"{host}:2223" for host in hosts];
kind = "ps" if sys.argv[1:] else "master" if here == hosts[0] else "worker";
index = [address.split(":")[0] for address in cluster[kind]].index(here);
task = {"type": kind, "index": index};
print(json.dumps({"cluster": cluster, "environment": "cloud", "task": task}))' "$@"; };
TF_CONFIG=$(tf_config ps) CUDA_VISIBLE_DEVICES="" python -c 'import json, os, tensorflow as tf;
config = json.loads(os.environ["TF_CONFIG"]);
cluster, index = config["cluster"], config["task"]["index"];
waiting = sum(map(len, cluster.values()));
threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=waiting);
tf.distribute.Server(cluster, "ps", index, "grpc", threads).join()' &
server=$!;
TF_CONFIG=$(tf_config) python train_tf_ps.py --epochs 8 --global-batch-size 64 --shard-by class --log-every 0;
kill $server"""
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", command=command),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=3),
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("tensorflow", "2.14.1", "ml.c5.xlarge"),
    **shared("servers"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

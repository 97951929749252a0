# %% ddp
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch_ddp.py"),
    distributed=Torchrun(),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"epochs": 2},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("ddp"),
)
trainer.train(wait=False)

# %% horovod
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_tf_horovod.py"),
    distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"epochs": 2},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("tensorflow", "2.12.0", "ml.c5.xlarge"),
    **shared("horovod"),
)
trainer.train(wait=False)

# %% one_process
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch.py"),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=1),
    hyperparameters={"epochs": 2},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("one-process"),
)
trainer.train(wait=False)

# %% fsdp
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch_fsdp.py"),
    distributed=Torchrun(),
    compute=Compute(instance_type="ml.g5.12xlarge", instance_count=2),
    hyperparameters={"epochs": 2, "channels": 256, "blocks": 12, "learning-rate": 0.01},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("pytorch", "2.8.0", "ml.g5.12xlarge"),
    **shared("fsdp"),
)
trainer.train(wait=False)

# %% local_sgd
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_torch_local_sgd.py"),
    distributed=Torchrun(),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"epochs": 2, "sync-every": 8},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    **shared("local-sgd"),
)
trainer.train(wait=False)

# %% multiworker
command = r"""export TF_CONFIG=$(python -c 'import json, os;
hosts = json.loads(os.environ["SM_HOSTS"]);
task = {"type": "worker", "index": hosts.index(os.environ["SM_CURRENT_HOST"])};
print(json.dumps({"cluster": {"worker": [f"{host}:8890" for host in hosts]}, "task": task}))');
python train_tf_mirrored.py --epochs 2"""
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", command=command),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("tensorflow", "2.14.1", "ml.c5.xlarge"),
    **shared("multiworker"),
)
trainer.train(wait=False)

# %% parameter_server
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
TF_CONFIG=$(tf_config) python train_tf_ps.py --epochs 2;
kill $server"""
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", command=command),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=3),
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("tensorflow", "2.14.1", "ml.c5.xlarge"),
    **shared("parameter-server"),
)
trainer.train(wait=False)

# %% mirrored
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_tf_mirrored.py"),
    compute=Compute(instance_type="ml.g5.12xlarge", instance_count=1),
    hyperparameters={"epochs": 2},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("tensorflow", "2.14.1", "ml.g5.12xlarge"),
    **shared("mirrored"),
)
trainer.train(wait=False)

# %% fit
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_tf_fit.py"),
    distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"]),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"epochs": 2, "library": "horovod"},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
    training_image=image("tensorflow", "2.12.0", "ml.c5.xlarge"),
    **shared("fit"),
)
trainer.train(wait=False)

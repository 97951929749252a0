tf_config() { python -c 'import json, os, sys;
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
TF_CONFIG=$(tf_config) python SCRIPT;
kill $server

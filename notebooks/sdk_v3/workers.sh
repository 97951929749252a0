export TF_CONFIG=$(python -c 'import json, os;
hosts = json.loads(os.environ["SM_HOSTS"]);
task = {"type": "worker", "index": hosts.index(os.environ["SM_CURRENT_HOST"])};
print(json.dumps({"cluster": {"worker": [f"{host}:8890" for host in hosts]}, "task": task}))');
python SCRIPT

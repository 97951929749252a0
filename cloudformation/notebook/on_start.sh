# Every start, the first one too: SageMaker runs this script each time, kills it after 5 minutes,
# and then the instance with it. Making the environment takes longer, so that goes on behind it, as
# the user of the notebooks: from the beginning, where it was interrupted, or, when all is there,
# only to name the kernel again, whose list is not on the disk that outlives a stop.
folder=$ROOT/home/ec2-user/SageMaker
chmod 755 "$ROOT/opt/workshop/set_up.sh"
nohup sudo -u ec2-user -H "$ROOT/opt/workshop/set_up.sh" "$KIT" "$folder" \
  >>"$folder/set_up.log" 2>&1 &
# The first Python that has boto3 looks after the instance.
for python in "$ROOT/home/ec2-user/anaconda3/envs/JupyterSystemEnv/bin/python" \
  "$ROOT/home/ec2-user/anaconda3/bin/python" /usr/bin/python3 python3; do
  if "$python" -c "import boto3" 2>/dev/null; then
    nohup "$python" "$ROOT/opt/workshop/idle_stop.py" --minutes "$IDLE_MINUTES" \
      --working "$folder/.set_up.lock" >>"$ROOT/var/log/workshop-idle-stop.log" 2>&1 &
    exit 0
  fi
done
echo "No Python here has boto3: the instance would never stop by itself." >&2
exit 1

# Jupyter's list of kernels is not on the disk that outlives a stop: say again what is there.
environment=$ROOT/home/ec2-user/SageMaker/workshop-env
if [ -e "$environment/.whole" ]; then
  sudo -u ec2-user -H "$environment/bin/python" -m ipykernel install --user \
    --name workshop --display-name Workshop
fi
# The first Python that has boto3 looks after the instance.
for python in "$ROOT/home/ec2-user/anaconda3/envs/JupyterSystemEnv/bin/python" \
  "$ROOT/home/ec2-user/anaconda3/bin/python" /usr/bin/python3 python3; do
  if "$python" -c "import boto3" 2>/dev/null; then
    nohup "$python" "$ROOT/opt/workshop/idle_stop.py" --minutes "$IDLE_MINUTES" \
      >>"$ROOT/var/log/workshop-idle-stop.log" 2>&1 &
    exit 0
  fi
done
echo "No Python here has boto3: the instance would never stop by itself." >&2
exit 1

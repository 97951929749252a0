# SageMaker kills this script after 5 minutes, and the instance with it; making the environment
# takes longer. So that goes on behind it, as the user of the notebooks.
folder=$ROOT/home/ec2-user/SageMaker
chmod +x "$folder/set_up.sh"
nohup sudo -u ec2-user -H "$folder/set_up.sh" "$KIT" "$folder" >"$folder/set_up.log" 2>&1 &

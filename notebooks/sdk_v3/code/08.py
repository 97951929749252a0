# %% serving
trainer = ModelTrainer(
    source_code=SourceCode(source_dir="../scripts/train", entry_script="train_tf.py"),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=1),
    hyperparameters={"epochs": 20},
    input_data_config=[
        InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
        InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
    ],
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    training_image=image("tensorflow", "2.12.0", "ml.c5.xlarge"),
    **shared("serving"),
)
trainer.with_metric_definitions(METRICS).train(wait=False)

# %% deploy
from sagemaker.serve.model_builder import ModelBuilder

trained = trainer._latest_training_job.refresh()  # once it has ended
builder = ModelBuilder(
    image_uri=image("tensorflow", "2.12.1", "ml.m5.large", "inference"),
    s3_model_data_url=trained.model_artifacts.s3_model_artifacts,
    network=Networking(subnets=subnets, security_group_ids=security_group_ids),
    role_arn=role,
    sagemaker_session=session,
)
builder.build(model_name=f"workshop-{seat}-v3")
endpoint = builder.deploy(f"workshop-{seat}-v3", 1, "ml.m5.large", wait=False)
endpoint.wait_for_status("InService", poll=2)

# %% transform
from sagemaker.core.transformer import Transformer

questions = f"s3://{bucket}/jobs/workshop-{seat}-questions"
common = {
    "instance_count": 1,
    "instance_type": "ml.m5.large",
    "assemble_with": "Line",
    "accept": "application/jsonlines",
    "sagemaker_session": session,
}
transformer = Transformer(
    model_name=f"workshop-{seat}-v3",
    strategy="MultiRecord",
    max_payload=1,
    output_path=f"{questions}/json-out",
    **common,
)
transformer.transform(
    f"{questions}/json", content_type="application/jsonlines", split_type="Line", wait=False
)

# %% handlers
builder = ModelBuilder(
    image_uri=image("tensorflow", "2.12.1", "ml.m5.large", "inference"),
    s3_model_data_url=trained.model_artifacts.s3_model_artifacts,
    source_code=SourceCode(source_dir="../scripts/demos/serve_csv", entry_script="inference.py"),
    role_arn=role,
    sagemaker_session=session,
)
builder.build(model_name=f"workshop-{seat}-v3-handlers")
transformer = Transformer(
    model_name=f"workshop-{seat}-v3-handlers",
    strategy="SingleRecord",
    output_path=f"{questions}/csv-out",
    **common,
)
transformer.transform(f"{questions}/csv", content_type="text/csv", split_type="Line", wait=False)

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

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

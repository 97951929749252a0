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

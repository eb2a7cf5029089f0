import pytest

from deltatape.dialects._bedrock_path import BedrockPath, read_path


@pytest.mark.parametrize(
    ("path", "model", "action"),
    [
        ("/model/some.model-v1%3A0/converse-stream", "some.model-v1:0", "converse-stream"),
        ("/bedrock/model/m/invoke/", "m", "invoke"),
        ("/model/arn%3Aaws%3Abedrock%2Fx/converse", "arn:aws:bedrock/x", "converse"),
        ("/model/arn:aws:bedrock/x/converse", "arn:aws:bedrock/x", "converse"),
        ("/model//invoke", None, "invoke"),
        ("/models/invoke", None, "invoke"),
        ("/converse", None, "converse"),
        ("", None, ""),
    ],
)
def test_the_path_names_model_and_action(path: str, model: str | None, action: str) -> None:
    assert read_path(path) == BedrockPath(model=model, action=action)

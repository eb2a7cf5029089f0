from deltatape.settings.values import Place

PLACE = Place(file="f.yaml", line=3, column=11)


def test_a_place_is_told_as_editors_and_compilers_do() -> None:
    assert str(PLACE) == "f.yaml:3:11"
    assert str(PLACE.refuse("no")) == "f.yaml:3:11: no"


def test_an_unknown_key_is_told_with_the_nearest_known_ones() -> None:
    known = ["listen", "max-size", "to"]
    for key, accepted in (
        ("lissen", "did you mean listen?"),
        ("max_size", "did you mean max-size?"),
        ("zzz", "known are listen max-size to"),
    ):
        error = PLACE.unknown(key, known, "option")
        assert str(error) == f"f.yaml:3:11: {key!r} is no option; {accepted}"

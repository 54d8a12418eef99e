"""What was asked is held against what is there."""

from loadbench.corpus.layouts import choose


def test_splits_come_in_their_usual_order_without_doubles() -> None:
    assert choose.in_order(["test", "zzz", "val", "train", "aaa", "test", "dev"]) == (
        *("train", "dev", "val", "test"),
        *("aaa", "zzz"),
    )


def test_the_main_part_of_a_language_tag_is_its_language() -> None:
    assert [choose.main(tag) for tag in ("zh-CN", "DE_at", "en", "gsg")] == ["zh", "de", "en", "gsg"]

from benchmarks import selectors


def test_the_table_has_both_costs_for_each_expression_and_the_aim_where_there_is_one() -> None:
    lines = selectors.measure(rounds=1, evaluations=3).splitlines()
    size = int(lines[0].split()[3])
    assert 900 <= size <= 1100
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[4:]]
    assert [row[0] for row in rows] == [*(name for name, _, _ in selectors.CASES), "a rule's condition"]
    for row, (_, expression, aimed) in zip(rows, selectors.CASES, strict=False):
        assert row[1] == f"`{expression}`"
        assert float(row[2]) > 0
        assert float(row[3]) > 0
        assert (row[4] in ("met", "missed")) == aimed

"""What files are made of: pieces that a fuzzer puts together at random."""

_JSON = [
    *(b"{", b"}", b"[", b"]", b",", b": ", b"\n", b"\r\n", b'"', b"\\"),
    *(b"null", b"true", b"1", b"-1", b"0.5", b"1e999", b"NaN", b"9" * 5000),
    *(b'"a"', b'""', b'"\\ud800"', b'"\\u0000"', b'"_"', b"[" * 100_000),
]
_ROWS = [
    *(b'"sentence": "a"', b'"label": 1', b'"label": ', b'"tokens": ["a"]'),
    *(b'"tags": ["O"]', b'"choices": ["x", "y"]', b'"ctx": "a"'),
    *(b'"question": "q"', b'"context": "c"', b'"id": ', b'"sentence1": "a"'),
    *(b'"sentence2": "b"', b'{"sentence": "a", "label": 1}\n'),
    *(b'"answers": ', b'{"text": "c", "answer_start": 0}', b'"endings": '),
    b'{"text": ["c"], "answer_start": [0]}',
]
_TABLE = [
    *(b"sentence,label\n", b"sentence\tlabel\n", b"tokens,tags\n", b"label,"),
    *(b"sentence1\tsentence2\tlabel\n", b"sentence,choices,label\n", b"a,1\n"),
    *(b"a\t1\n", b'"', b'""', b",", b"\t", b"\n", b"\r", b"a", b"1", b"-1"),
    *(b'"[""x"", ""y""]"', b'["x"]', b"a b", b"O O", b"9" * 5000, b"nan"),
    b"word " * 100_000,
]
_WORDS = [
    *(b"1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n", b"1-2\ta", b"\t_" * 9, b"\n", b" "),
    *(b"a O\n", b"b B-PER\n", b"-DOCSTART-", b"# text\n", b"\t", b"1", b"_"),
]
_SQUAD = [
    *(b'{"data": ', b'[{"paragraphs": ', b'[{"context": "c", "qas": ', b"]}"),
    b'{"id": "1", "question": "q", "answers": [{"text": "c",'
    b' "answer_start": 0}]}',
]
_YAML = [
    *(b"task: ", b"method: ", b"train:\n  ", b"data: ", b"name: ", b"units: "),
    *(b"learning_rate: ", b"epochs: ", b"seed: ", b"tasks: ", b"task_file: "),
    *(b"houlsby", b"multitask", b"sst2", b"fusion", b"adapter: ", b"labels: "),
    *(b"text_fields: ", b"files: ", b"head: ", b"metrics: ", b"label_range: "),
    *(b"{train: a.csv, validation: b.csv}", b"members: ", b"settings: "),
    *(b"[", b"]", b"{", b"}", b", ", b": ", b"\n", b"\n  ", b"- ", b"? ", b"|"),
    *(b"&a ", b"*a", b"<<: ", b"!!int ", b"!!timestamp ", b"!!bool ", b"!!set"),
    *(b"0x_", b"1:99", b"2001-99-99", b".nan", b".inf", b"1", b"-1", b"null"),
    *(b"true", b"[0]", b"9" * 5000, b"[" * 3000, b"../", b"'", b"!!binary "),
]
_OVERRIDES = [
    *(
        b"method.units=",
        b"train.epochs=",
        b"seed=",
        b"method=",
        b"method.name=",
    ),
    *(b"method.adapter=", b"data=", b"method.leave_out=", b"task=", b"."),
    *(b"method.rank=", b"train.learning_rate=", b"data.task_file=", b"="),
    *(b"method.tasks=", b"members.tasks=", b"members.settings=", b"encoder="),
    *(b"method.reduction_factor=", b"method.adapters=", b"fusion", b"lora"),
    *(b"diff_pruning", b"mixout", b"adapter_bias", b"train.precision="),
]
_ADAPTER = [
    *(
        b'"format_version": 1',
        b'"encoder": ',
        b'"fingerprint": "f"',
        b'"name": ',
    ),
    *(b'"method": ', b'{"name": "houlsby"', b'{"name": "lora"', b'"head": '),
    *(b'"head": null', b'{"name": "classification", "labels": ["a", "b"]}'),
    *(b'"units": ', b'"members": [', b'"folder": "../../x"', b'"details": '),
    b'{"format_version": 1, "encoder": {"name": "e", "fingerprint": "f"}, ',
    b'{"format_version": 1, "encoder": {"name": "e", "fingerprint": "f"}, '
    b'"method": {"name": "houlsby"}, "head": null, "members": [], "details": ',
    *(b'"labels": ', b'"blank": ', b'"answers": ', b'"adapter": '),
]
_TENSORS = [
    *(b"\x02\0\0\0\0\0\0\0{}", b"\0\0\0\0\0\4\0\0{}", b"\x40\0\0\0\0\0\0\0"),
    *(b'{"a": ', b'{"dtype": "F32"', b', "shape": [1]', b', "shape": []'),
    *(b', "data_offsets": [0, 4]}', b'"BF16"', b'"F8_E4M3"', b"\0\0\0\0", b" "),
    *(b'"__metadata__": {"a": "b"}', b'"shape": [18446744073709551615, 2]'),
]
_STATE = [
    *(b'{"step": 10, "state": {}, ', b'"step": ', b'"state": ', b'"sha256": '),
    b'"sha256": "SHA256"}',
]

FRAGMENTS = {
    "jsonl": _JSON + _ROWS,
    "csv": _TABLE + _JSON,
    "tsv": _TABLE,
    "conllu": _WORDS,
    "conll": _WORDS,
    "json": _JSON + _ROWS + _SQUAD,
    "txt": _TABLE,
    "config_file": _YAML,
    "override": _YAML + _OVERRIDES,
    "task_file": _YAML,
    "adapter_config": _JSON + _ADAPTER,
    "tensors": _TENSORS + _JSON,
    "checkpoint": _JSON + _STATE,
}

"""Files that are right but for `@`, where a fuzzer puts a value of its own."""

_ROWS = [
    b'{"sentence": @, "label": 0}\n',
    b'{"sentence": "a", "label": @}\n',
    b'{"sentence1": "a", "sentence2": @, "label": @}\n',
    b'{"sentence": "a _", "choices": ["x", @], "label": @}\n',
    b'{"context": "a", "endings": @, "label": 0}\n',
    b'{"tokens": ["a"], "tags": @}\n',
    b'{"tokens": @, "tags": ["O", "O"]}\n',
    b'{"id": @, "question": "q", "context": "c", "answers": []}\n',
    b'{"id": 1, "question": "q", "context": "c", "answers": @}\n',
    b'{"id": 1, "question": "q", "context": "c", "answers": '
    b'[{"text": @, "answer_start": @}]}\n',
]
_ADAPTER = (
    b'{"format_version": 1, "encoder": {"name": "e", "fingerprint": "f"}, '
    b'"method": {"name": "houlsby"}, "head": null, "members": []}'
)

TEMPLATES = {
    "jsonl": _ROWS,
    "csv": [
        *(b"sentence,label\n@,0\n", b"sentence,label\na,@\n"),
        *(b"sentence1,sentence2,label\na,b,@\n", b"sentence,sentence\n@,@\n"),
        *(b"sentence,choices,label\na,@,0\n", b"tokens,tags\na b,@\n"),
    ],
    "tsv": [
        *(b"sentence\tlabel\n@\t0\n", b"sentence\tlabel\na\t@\n"),
        *(b"sentence1\tsentence2\tlabel\na\tb\t@\n", b"tokens\ttags\n@\tO\n"),
    ],
    "conllu": [b"1\t@\t_\tX" + b"\t_" * 6, b"@\ta\t_\tX" + b"\t_" * 6],
    "conll": [b"@ O\nb O\n", b"a @\n"],
    "json": [
        b'{"data": [{"paragraphs": [{"context": @, "qas": [%s]}]}]}' % row
        for row in _ROWS[-3:]
    ]
    + [b'{"data": @}', b'{"data": [{"paragraphs": @}]}'],
    "txt": [b"@\n", b"a\n@\n"],
    "config_file": [
        *(b"train: {learning_rate: @}", b"method: {name: houlsby, units: @}"),
        *(b"method: @", b"method: {name: @}", b"train: @", b"task: @"),
        *(b"method: {name: multitask, tasks: @}", b"data: {task_file: @}"),
        *(b"method: {name: multitask, tasks: [a, b], adapter: @}", b"seed: @"),
        *(b"method: {name: mixout, adapter: @, rate: @}", b"encoder: @"),
        *(b"method: {name: fusion, adapters: @}", b"members: {tasks: @}"),
        *(
            b"method: {name: diff_pruning, share: @}",
            b"@: @",
            b"a: &a @\nb: *a",
        ),
        *(b"method: {name: lora, rank: @, alpha: @}", b"data: {max_length: @}"),
    ],
    "override": [
        *(b"method=lora,method.rank=@", b"method=houlsby,method.units=@"),
        *(b"train.learning_rate=@", b"method.leave_out=@", b"data.languages=@"),
        *(b"method=adapter_bias,method.l0_lambda=@", b"train=@", b"@=@"),
        *(b"method=multitask,method.tasks=@", b"method.name=@", b"method=@"),
    ],
    "task_file": [
        b"name: @\ntext_fields: [a]\nlabels: [x, y]\n"
        b"files: {train: a, validation: b}\n",
        b"name: a\ntext_fields: @\nlabels: @\nhead: classification\n"
        b"files: {train: a, validation: @}\n",
        b"name: a\ntext_fields: [a]\nhead: @\nmetrics: @\nlabels: [x, y]\n"
        b"files: {train: a, validation: b}\n",
        b"name: a\ntext_fields: [a]\nhead: regression\nlabel_range: @\n"
        b"files: @\n",
    ],
    "adapter_config": [
        _ADAPTER.replace(old, new)
        for old, new in (
            (b'"e"', b"@"),
            (b'"f"', b"@"),
            (b": 1", b": @"),
            (b"null", b'{"name": "classification", "labels": @}'),
            (b"null", b"@"),
            (b"[]", b"@"),
            (b"[]", b'[{"name": "a", "folder": @, "fingerprint": @}]'),
            (b'{"name": "houlsby"}', b'{"name": "houlsby", "units": @}'),
            (b'{"name": "houlsby"}', b'{"name": "multitask", "adapter": @}'),
            (b'{"name": "houlsby"}', b"@"),
            (b'"houlsby"', b"@"),
        )
    ],
    "tensors": [
        b'\x44\0\0\0\0\0\0\0{"a": {"dtype": "@", "shape": [@], '
        b'"data_offsets": [0, 4]}}\0\0\0\0\0\0\0\0',
        b'\x3c\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[@],'
        b'"data_offsets":[0,@]}}    \0\0\0\0',
    ],
    "checkpoint": [
        b'{"step": @, "state": {}, "sha256": "SHA256"}',
        b'{"step": 10, "state": @, "sha256": "SHA256"}',
        b'{"step": 10, "state": {"a": @}, "sha256": @}',
    ],
}

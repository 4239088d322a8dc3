"""The layers of a bank: the weights of many adapters, selected per example.

A bank is an encoder with many adapters. Methods attach layers at these places
of an encoder: after a sublayer, at a projection, at the keys and values, at a
norm, at the embeddings, at the pooler, and at the head. Each kind of layer is a
`BankLayer` in this folder:

- after a sublayer: a bottleneck, or a shift of each token along a vector;
- at a projection: a low-rank product, factors of inputs or outputs, a
  difference of the bias;
- at the keys and values: a prefix;
- at a norm: its scale and offset;
- at the embeddings and the pooler: a difference of a bias;
- at the head: a hidden layer and a linear layer.

A `BankLayer` holds a variable `(rows, ...)` for each weight of its kind. Row 0
is neutral, that is, it changes nothing. An adapter has a row of its own in each
layer that it needs, and uses row 0 of all other layers. Widths are padded to 8,
16, 64 or 256, and each width has its own layer. So an adapter takes the memory
of its own weights, padded, and adapters of different methods and sizes share a
batch.

A batch carries `adapter_rows`, `(batch, columns)` integers: the rows of each
example's adapter. Each layer reads its own column. An adapter is added by
assigning rows, so no graph is traced again.
"""

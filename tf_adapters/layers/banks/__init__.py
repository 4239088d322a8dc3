"""The layers of a bank: the weights of many adapters, selected per example.

An encoder has places to which methods add something: after a sublayer, at a
projection, at the keys and values, at a norm, at the embeddings, at the pooler,
and at the head. What adapters add at a place is of a few kinds, each a
`BankLayer` in this folder:

- after a sublayer: a bottleneck, or a shift of each token along a vector;
- at a projection: a product of low rank, factors of inputs or outputs, a
  difference of the bias;
- at the keys and values: a prefix;
- at a norm: its scale and offset;
- at the embeddings and the pooler: a difference of a bias;
- at the head: a hidden layer and a linear layer.

A `BankLayer` holds a variable `(rows, ...)` for each weight of its kind. Row 0
is neutral, that is, it changes nothing. An adapter has a row of its own in each
layer that it needs, and row 0 of all others. Widths are padded to 8, 16, 64 or
256, and each width has its own layer. So an adapter takes the memory of its own
weights, padded, and adapters of different methods and sizes share a batch.

A batch carries `adapter_rows`, `(batch, columns)` integers: the rows of each
example's adapter. Each layer reads its own column. To add an adapter is to
assign rows, which traces no graph again.
"""

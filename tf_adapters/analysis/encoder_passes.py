"""A trained encoder over a data set, batch by batch."""

_INPUTS = ("token_ids", "padding_mask", "segment_ids")


def encoder_passes(model, config, examples, read, **options):
    """Computes the encoder's outputs in evaluation.

    Args:
        model: `AdapterModel`.
        config: `Config`; its `train.eval_batch_size` is used.
        examples: `Examples`. Each choice of a list is a text of its own.
        read: Function from the encoder's outputs to tensors, part of the graph.
        **options: What is asked for, see the call of `AdaptedEncoder`.

    Yields:
        For each batch the places of its examples `(batch,)`, the encoder's
        inputs, and what `read` returned.
    """
    import tensorflow as tf

    from tf_adapters.data.batches import pipeline
    from tf_adapters.models.adapter_model import as_sequences

    @tf.function(reduce_retracing=True)
    def step(inputs):
        return read(model.encode(inputs, **options))

    plan = pipeline.plan_evaluation(
        examples.lengths, config.train.eval_batch_size
    )
    for features in pipeline.dataset(examples, plan):
        inputs = as_sequences(
            {k: features[k] for k in _INPUTS if k in features}
        )
        yield features["indices"].numpy(), inputs, step(inputs)

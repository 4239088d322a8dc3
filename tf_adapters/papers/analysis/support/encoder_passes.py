"""A trained encoder over a data set, batch by batch."""


def probe_passes(experiment, rows, read):
    """Returns what `encoder_passes` does, of an experiment's model over rows.

    Args:
        experiment: `Experiment`.
        rows: Its task's rows.
        read: As of `encoder_passes`; there are probes among the outputs.
    """
    examples = experiment.examples(rows, labelled=False)
    return encoder_passes(
        experiment.model, experiment.config, examples, read, return_probes=True
    )


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

    from tf_adapters.data.batches import batch_plan
    from tf_adapters.data.batches import pipeline
    from tf_adapters.data.encoded import encoder_inputs
    from tf_adapters.models.adapter_model import as_sequences

    @tf.function(reduce_retracing=True)
    def step(inputs):
        return read(model.encode(inputs, **options))

    plan = batch_plan.plan_evaluation(
        examples.lengths, config.train.eval_batch_size
    )
    for features in pipeline.dataset(examples, plan):
        inputs = as_sequences(encoder_inputs(features))
        yield features["indices"].numpy(), inputs, step(inputs)

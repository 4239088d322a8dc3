# Serves SavedModels: REST on port 8501, gRPC on port 8500.
#
#   docker build -f docker/tensorflow_serving.Dockerfile -t served \
#       runs/reviews/export
#   docker run --rm -p 8500:8500 -p 8501:8501 served
FROM tensorflow/serving:2.21.0
COPY . /models
CMD ["--model_config_file=/models/models.config"]

# Answers texts with an ONNX export. Needs no TensorFlow.
#
#   docker build -f docker/onnxruntime.Dockerfile -t reviews \
#       runs/reviews/onnx/reviews
#   docker run --rm reviews python run.py "a dull one"
FROM python:3.11-slim
RUN pip install --no-cache-dir numpy==2.4.6 onnxruntime==1.31.1 tokenizers==0.23.3
WORKDIR /model
COPY . .
CMD ["python", "run.py", "a fine film"]

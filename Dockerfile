# docker build -t spt . && docker run --rm -p 7860:7860 -v spt:/data spt          (add --gpus all for a GPU)
#
# No GPU is needed to build: torch from PyPI carries CUDA and falls back to the CPU where no card is passed in.
FROM python:3.11-slim

RUN useradd --create-home --uid 1000 user && mkdir /data && chown user:user /data
USER 1000
WORKDIR /home/user/app
ENV HOME=/home/user \
    PATH=/home/user/.local/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PORT=7860 \
    SPT_HOME=/data/spt \
    HF_HOME=/data/huggingface

COPY --chown=user requirements.txt .
RUN pip install --no-cache-dir --user -r requirements.txt
COPY --chown=user . .

# Runs, converted models and the hub's cache live here; without a volume they end with the container.
VOLUME /data
EXPOSE 7860
HEALTHCHECK --start-period=60s --timeout=5s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PORT'])"]
CMD ["python", "app.py", "--host", "0.0.0.0"]

# docker build -t transferable . && docker run --rm transferable
# docker run --rm -v "$PWD:/data" transferable adapt source.csv target.csv --label kind --out predictions.csv
FROM python:3.13-slim
COPY pyproject.toml README.md LICENSE /library/
COPY src /library/src
RUN pip install --no-cache-dir "/library[tables,excel]" && rm -r /library
RUN useradd --create-home user && mkdir /data && chown user /data
USER user
WORKDIR /data
ENTRYPOINT ["transferable"]
CMD ["demo"]

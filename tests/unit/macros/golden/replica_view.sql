create or replace temporary view openmirroring_replica (
      `id` bigint,
      `it's ``odd``` string
    ) using parquet options (
      path '/lake/it\'s \\[odd\\]/orders/{a.parquet,day=it\'s/b.parquet}'
    )

insert overwrite directory 'file:/lake/it\'s [odd]/rows' using parquet
  options (compression 'zstd', maxRecordsPerFile 0)
  select 1 as `id`

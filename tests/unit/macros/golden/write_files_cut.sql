insert overwrite directory 'file:/lake/it\'s [odd]/rows' using parquet
  options (compression 'snappy', maxRecordsPerFile 5000)
  select 1 as `id`

select file, marker, count(*) as found
  from (
    select _metadata.file_name as file, `__rowMarker__` as marker
    from parquet.`file:/lake/it's \[odd\]/rows`
  )
  group by file, marker

select file, marker, count(*) as found
  from (
    select regexp_extract(input_file_name(), '[^/]*$', 0) as file, cast(null as int) as marker
    from openmirroring_staged
  )
  group by file, marker

(select * from `shop`.`orders` where _metadata.file_path in ('file:/a.parquet'))

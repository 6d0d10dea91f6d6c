select coalesce(sum(size), 0) from (select distinct _metadata.file_path, _metadata.file_size as size from `shop`.`orders__next`)

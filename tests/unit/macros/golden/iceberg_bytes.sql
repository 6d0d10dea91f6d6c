select coalesce(sum(file_size_in_bytes), 0) from `shop`.`orders__next`.`files`

select unix_micros(max(_metadata.file_modification_time)) from `shop`.`orders__next`

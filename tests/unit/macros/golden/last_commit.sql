select unix_micros(max(committed_at)) from `shop`.`orders__next`.snapshots

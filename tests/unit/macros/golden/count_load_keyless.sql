select count(*) as inserted, false as bad_keys from `shop`.`orders__next`

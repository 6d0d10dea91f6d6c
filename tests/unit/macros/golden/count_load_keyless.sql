select count(*) as inserted, false as refused from `shop`.`orders__next`
